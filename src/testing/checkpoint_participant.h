// A part of the server that checkpoints save beside the dataset: function libraries, scripts,
// configuration, users. standard_participants() lists them.
#pragma once

#include <memory>

namespace latchkey::testing {

class CheckpointParticipant {
 public:
  // What a participant has saved; freed with the checkpoint.
  struct State {
    virtual ~State() = default;
  };

  virtual ~CheckpointParticipant() = default;
  // What there is now, in a form that later changes do not reach. Must be quick, however much there
  // is: references rather than copies.
  virtual std::unique_ptr<State> save() = 0;
  // Brings back what save() returned, any number of times. Called after the dataset was restored,
  // in the order of that list. What replicas and the append-only file must hear is to be
  // propagated.
  virtual void restore(State& state) = 0;
};

}  // namespace latchkey::testing
