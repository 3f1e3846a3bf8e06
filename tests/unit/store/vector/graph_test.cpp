#include "store/vector/graph.h"

#include <algorithm>
#include <set>
#include <vector>

#include "unit/catch.h"

namespace latchkey::store {

namespace {

using Slot = VectorGraph::Slot;
constexpr size_t kDimensions = 16;
constexpr size_t kEffort = 100;

std::vector<float> random_vector(base::Random& random) {
  std::vector<float> components(kDimensions);
  for (float& component : components) component = static_cast<float>(random.unit() * 2 - 1);
  return components;
}

Slot add(VectorGraph& graph, const std::vector<float>& components, base::Random& random) {
  const VectorBuffer vector(graph.distance().quantization(), components);
  return graph.insert(vector.view(), graph.draw_level(random), kEffort);
}

// The share of the ten nearest nodes that a search finds, on average.
double recall(const VectorGraph& graph, base::Random& random) {
  constexpr size_t kQueries = 100;
  constexpr size_t kWanted = 10;
  size_t found = 0;
  for (size_t query = 0; query < kQueries; ++query) {
    const VectorBuffer vector(graph.distance().quantization(), random_vector(random));
    std::vector<float> distances;
    for (size_t slot = 0; slot < graph.size(); ++slot)
      distances.push_back(graph.distance()(vector.view(), graph.vector(static_cast<Slot>(slot))));
    std::nth_element(distances.begin(), distances.begin() + kWanted - 1, distances.end());
    const float farthest = distances[kWanted - 1];
    const auto near = graph.search(vector.view(), {.effort = kEffort});
    for (size_t i = 0; i < std::min(kWanted, near.size()); ++i)
      found += near[i].distance <= farthest ? 1 : 0;
  }
  return static_cast<double>(found) / (kQueries * kWanted);
}

// The number of nodes that can be reached from the first by links of level 0.
size_t reachable(const VectorGraph& graph) {
  std::vector<bool> seen(graph.size());
  std::vector<Slot> next{0};
  seen[0] = true;
  size_t count = 0;
  while (!next.empty()) {
    const Slot slot = next.back();
    next.pop_back();
    ++count;
    for (const Slot to : graph.links(slot, 0)) {
      if (!seen[to]) next.push_back(to);
      seen[to] = true;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("A search finds nearly all that looking at everything finds", "[vector]") {
  for (const Quantization quantization :
       {Quantization::kFloat, Quantization::kByte, Quantization::kBit}) {
    base::Random random(7);
    VectorGraph graph(quantization, kDimensions, 16);
    for (int i = 0; i < 2000; ++i) add(graph, random_vector(random), random);
    CHECK(graph.is_consistent());
    CHECK(reachable(graph) == graph.size());
    CHECK(recall(graph, random) > 0.95);
  }
}

TEST_CASE("Searches find as much when most nodes have been erased", "[vector]") {
  base::Random random(11);
  VectorGraph graph(Quantization::kByte, kDimensions, 8);
  for (int i = 0; i < 3000; ++i) add(graph, random_vector(random), random);
  const double before = recall(graph, random);
  while (graph.size() > 600) graph.erase(static_cast<Slot>(random.below(graph.size())));
  CHECK(graph.is_consistent());
  CHECK(reachable(graph) == graph.size());
  CHECK(recall(graph, random) > before - 0.02);
  for (int i = 0; i < 2000; ++i) {
    graph.erase(static_cast<Slot>(random.below(graph.size())));
    add(graph, random_vector(random), random);
  }
  CHECK(graph.is_consistent());
  CHECK(recall(graph, random) > before - 0.02);
}

TEST_CASE("Whatever is added and erased, a graph stays consistent", "[vector]") {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    INFO(seed);
    base::Random random(seed);
    VectorGraph graph(Quantization::kByte, kDimensions, 4);
    const bool has_twins = seed % 2 == 0;
    const std::vector<float> twin = random_vector(random);
    for (int step = 0; step < 1500; ++step) {
      // Grows and shrinks by turns, to nothing at times.
      const bool grows = random.below(100) < (step / 150 % 2 == 0 ? 70U : 25U);
      if (grows) {
        add(graph, has_twins && random.below(2) == 0 ? twin : random_vector(random), random);
      } else if (graph.size() > 0) {
        graph.erase(static_cast<Slot>(random.below(graph.size())));
      }
      if (step % 25 == 0) REQUIRE(graph.is_consistent());
    }
    unsigned top = 0;
    for (size_t slot = 0; slot < graph.size(); ++slot)
      top = std::max(top, graph.level(static_cast<Slot>(slot)));
    CHECK(graph.top_level() == top);
    while (graph.size() > 0) graph.erase(0);
    CHECK(graph.is_consistent());
    CHECK(graph.search({}, {.effort = 1}).empty());
  }
}

TEST_CASE("Many nodes at one place do not hide the others", "[vector]") {
  base::Random random(3);
  VectorGraph graph(Quantization::kFloat, kDimensions, 16);
  const std::vector<float> twin = random_vector(random);
  std::vector<std::vector<float>> others;
  for (int i = 0; i < 500; ++i) add(graph, twin, random);
  for (int i = 0; i < 300; ++i) {
    others.push_back(random_vector(random));
    add(graph, others.back(), random);
    add(graph, twin, random);
  }
  CHECK(graph.is_consistent());
  size_t found = 0;
  for (const auto& other : others) {
    const VectorBuffer vector(Quantization::kFloat, other);
    found += graph.search(vector.view(), {.effort = 20}).front().distance < 1e-5 ? 1 : 0;
  }
  CHECK(found >= others.size() * 98 / 100);
}

TEST_CASE("A search returns only what it accepts, and ends when it was told to", "[vector]") {
  base::Random random(5);
  VectorGraph graph(Quantization::kByte, kDimensions, 16);
  for (int i = 0; i < 1000; ++i) add(graph, random_vector(random), random);
  const VectorBuffer query(Quantization::kByte, random_vector(random));
  size_t asked = 0;
  const std::function<bool(Slot)> tenth = [&](Slot slot) {
    ++asked;
    return slot % 10 == 0;
  };
  const auto found = graph.search(query.view(), {.effort = 50, .accepts = &tenth});
  CHECK(found.size() == 50);
  CHECK(
      std::all_of(found.begin(), found.end(), [](const auto& one) { return one.slot % 10 == 0; }));
  CHECK(std::is_sorted(found.begin(), found.end(),
                       [](const auto& a, const auto& b) { return a.distance < b.distance; }));
  asked = 0;
  const std::function<bool(Slot)> none = [&](Slot) {
    ++asked;
    return false;
  };
  graph.search(query.view(), {.effort = 50, .accepts = &none, .most_visited = 100});
  // A node's neighbours are visited together.
  CHECK(asked >= 100);
  CHECK(asked <= 132);
}

TEST_CASE("A copy of a graph is independent of it", "[vector]") {
  base::Random random(9);
  VectorGraph graph(Quantization::kByte, kDimensions, 4);
  for (int i = 0; i < 300; ++i) add(graph, random_vector(random), random);
  const VectorGraph copy(graph);
  while (graph.size() > 0) graph.erase(0);
  CHECK(copy.size() == 300);
  CHECK(copy.is_consistent());
  CHECK(recall(copy, random) > 0.9);
}

TEST_CASE("Loading refuses links that no graph has", "[vector]") {
  const base::HashSecret secret(1);
  const VectorBuffer vector(Quantization::kByte, std::vector<float>(kDimensions, 1.0F));
  struct Links {
    std::vector<Slot> of_first, of_second;
    bool is_valid;
  };
  const Links cases[] = {{{1}, {0}, true},  {{}, {}, true},          {{1}, {}, false},
                         {{0}, {0}, false}, {{1, 1}, {0, 0}, false}, {{2}, {0}, false}};
  for (const auto& [of_first, of_second, is_valid] : cases) {
    VectorGraph graph(Quantization::kByte, kDimensions, 4);
    graph.append(vector.view(), 0);
    graph.append(vector.view(), 1);
    REQUIRE(graph.set_links(0, 0, of_first));
    REQUIRE(graph.set_links(1, 0, of_second));
    CHECK(graph.finish_loading(secret) == is_valid);
    CHECK(graph.is_consistent() == is_valid);
  }
  VectorGraph graph(Quantization::kByte, kDimensions, 4);
  graph.append(vector.view(), 0);
  graph.append(vector.view(), 1);
  CHECK_FALSE(graph.set_links(0, 1, std::vector<Slot>{1}));
  CHECK_FALSE(graph.set_links(0, 0, std::vector<Slot>(9, 1)));
  REQUIRE(graph.set_links(1, 1, std::vector<Slot>{0}));
  CHECK_FALSE(graph.finish_loading(secret));
}

}  // namespace latchkey::store
