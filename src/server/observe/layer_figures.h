// What layers above tell of themselves, for INFO and for limits.
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
  Figures operator()() const { return tell_ ? tell_() : Figures(); }
  // Null: the layer has gone.
  void set(std::function<Figures()> tell) { tell_ = std::move(tell); }

 private:
  std::function<Figures()> tell_;
};

struct LayerFigures {
  FigureSource<ScriptFigures> scripts;
  FigureSource<PersistenceFigures> persistence;
  FigureSource<ReplicationFigures> replication;
  // The place in the replication stream that the dataset now stands for; nothing when it stands for
  // none.
  FigureSource<std::optional<StreamPlace>> stream_place;
};

}  // namespace latchkey::server
