// SPDX-License-Identifier: Apache-2.0
#include "traces/compose.hpp"

#include "sim/core/error.hpp"
#include "traces/packing.hpp"

#include <cstdint>
#include <iterator>
#include <numeric>

namespace dipsim {

namespace {

constexpr double kRounding = 1e-9;  // of sums in another order, relative to the mean

/// Moves the next `count` values of a list.
template <class T>
class Taker {
 public:
  explicit Taker(const std::vector<T>& from) : next_(from.begin()), end_(from.end()) {}

  std::vector<T> take(std::int32_t count) {
    DIPSIM_CHECK(count >= 0 && end_ - next_ >= count, "samples hold more than their microbatch");
    const auto first = next_;
    next_ += count;
    return {first, next_};
  }

  [[nodiscard]] bool done() const { return next_ == end_; }

 private:
  typename std::vector<T>::const_iterator next_;
  typename std::vector<T>::const_iterator end_;
};

/// Each sample as a microbatch of its own.
std::vector<Microbatch> split_samples(const Microbatch& from) {
  Taker documents(from.documents);
  Taker images(from.images);
  Taker audios(from.audios);
  Taker clips(from.clips);
  std::vector<Microbatch> out;
  out.reserve(from.samples.size());
  for (const PackedSample& sample : from.samples) {
    out.push_back({.documents = documents.take(sample.documents),
                   .images = images.take(sample.images),
                   .audios = audios.take(sample.audios),
                   .clips = clips.take(sample.clips),
                   .samples = {sample}});
  }
  DIPSIM_CHECK(documents.done() && images.done() && audios.done() && clips.done(),
               "a microbatch holds what belongs to no sample");
  return out;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void append(Microbatch& to, const Microbatch& sample) {
  append(to.documents, sample.documents);
  append(to.images, sample.images);
  append(to.audios, sample.audios);
  append(to.clips, sample.clips);
  append(to.samples, sample.samples);
}

Sizes sizes_of(const Microbatch& sample) {
  const auto tokens = std::accumulate(sample.documents.begin(), sample.documents.end(), 0.0);
  return {tokens, static_cast<double>(sample.images.size()),
          static_cast<double>(sample.clips.size()), sample.samples.front().clip_seconds};
}

Sizes sizes_of(const PackingSpec& limits) {
  return {static_cast<double>(limits.tokens), static_cast<double>(limits.max_images),
          static_cast<double>(limits.max_clips), limits.max_clip_seconds + kSecondsMargin};
}

/// Microbatches as items, replicas as bins that take equally many of them.
DealProblem replica_problem(const DealProblem& samples, const Deal& deal, std::size_t replicas) {
  const std::size_t per_replica = samples.bins / replicas;
  DealProblem out{.bins = replicas,
                  .kinds = samples.kinds,
                  .work = std::vector<double>(samples.bins * samples.kinds, 0.0),
                  .sizes = std::vector<Sizes>(samples.bins, Sizes{1.0}),
                  .limits = {static_cast<double>(per_replica)}};
  for (std::size_t i = 0; i < samples.work.size(); ++i) {
    out.work[deal[i / samples.kinds] * samples.kinds + i % samples.kinds] += samples.work[i];
  }
  return out;
}

/// Replica of each microbatch: contiguous blocks, as make_batch() deals them.
Deal in_blocks(std::size_t microbatches, std::size_t replicas) {
  Deal out(microbatches);
  for (std::size_t i = 0; i < microbatches; ++i) {
    out[i] = i / (microbatches / replicas);
  }
  return out;
}

/// The samples of an iteration, and the places that they may take.
class Composer {
 public:
  Composer(std::span<const Microbatch> microbatches, const PackingSpec& limits, int replicas,
           const SampleWork& work)
      : replicas_(static_cast<std::size_t>(replicas)) {
    DIPSIM_CHECK(replicas > 0, "there is a replica");
    DIPSIM_CHECK(microbatches.size() % replicas_ == 0, "replicas have equally many microbatches");
    problem_.bins = microbatches.size();
    problem_.limits = sizes_of(limits);
    for (std::size_t i = 0; i < microbatches.size(); ++i) {
      for (Microbatch& sample : split_samples(microbatches[i])) {
        const std::vector<double> own = work(sample);
        problem_.kinds = own.size();
        append(problem_.work, own);
        problem_.sizes.push_back(sizes_of(sample));
        packed_.push_back(i);
        samples_.push_back(std::move(sample));
      }
    }
  }

  [[nodiscard]] ComposedIteration run() const {
    Deal deal = spread(improve_deal(problem_, packed_));
    const Evenness packed = evenness(packed_);
    if (evenness(deal).replicas.deviation > packed.replicas.deviation + kRounding) {
      deal = spread(packed_);  // evener microbatches must not cost the evenness of the replicas
    }
    ComposedIteration out{.microbatches = std::vector<Microbatch>(problem_.bins),
                          .packed = packed,
                          .composed = evenness(deal),
                          .divisible = samples_.size() > problem_.bins};
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      append(out.microbatches[deal[i]], samples_[i]);
    }
    return out;
  }

 private:
  [[nodiscard]] Evenness evenness(const Deal& deal) const {
    return {.microbatches = unevenness(problem_, deal),
            .replicas = unevenness(replica_problem(problem_, deal, replicas_),
                                   in_blocks(problem_.bins, replicas_))};
  }

  /// Renumbers the microbatches of a deal so that the replicas are even.
  [[nodiscard]] Deal spread(Deal deal) const {
    const Deal replica = improve_deal(replica_problem(problem_, deal, replicas_),
                                      in_blocks(problem_.bins, replicas_));
    std::vector<std::size_t> next(replicas_);
    for (std::size_t i = 0; i < replicas_; ++i) {
      next[i] = i * (problem_.bins / replicas_);
    }
    Deal place(problem_.bins);
    for (std::size_t i = 0; i < problem_.bins; ++i) {
      place[i] = next[replica[i]]++;
    }
    for (std::size_t& microbatch : deal) {
      microbatch = place[microbatch];
    }
    return deal;
  }

  std::size_t replicas_;
  DealProblem problem_;  ///< samples as items, microbatches as bins
  std::vector<Microbatch> samples_;
  Deal packed_;  ///< as they came
};

}  // namespace

ComposedIteration compose_microbatches(std::span<const Microbatch> microbatches,
                                       const PackingSpec& limits, int replicas,
                                       const SampleWork& work) {
  return Composer(microbatches, limits, replicas, work).run();
}

}  // namespace dipsim
