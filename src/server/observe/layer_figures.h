// Figures that layers above report, for INFO and for limits.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "server/observe/memory_report.h"
#include "server/observe/persistence_figures.h"
#include "server/observe/replication_figures.h"
#include "server/replication_history.h"

namespace latchkey::server {

// Figures of a layer, or those of a server without it.
template <typename Figures>
class FigureSource {
 public:
  Figures operator()() const { return source_ ? source_() : Figures(); }
  // Null: the layer has gone.
  void set(std::function<Figures()> source) { source_ = std::move(source); }

 private:
  std::function<Figures()> source_;
};

struct LayerFigures {
  FigureSource<ScriptFigures> scripts;
  FigureSource<PersistenceFigures> persistence;
  FigureSource<ReplicationFigures> replication;
  // The place in the replication stream up to which its requests are in the dataset; nothing when
  // there is no such place.
  FigureSource<std::optional<StreamPlace>> stream_place;
};

}  // namespace latchkey::server
