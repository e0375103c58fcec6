// SPDX-License-Identifier: Apache-2.0
#include "validate/refit.hpp"

#include <cmath>
#include <utility>

namespace dipsim {

namespace {

template <class F>
BandwidthCurve each(BandwidthCurve c, const F& f) {
  for (Parameter* const p : {&c.start_up_us, &c.bandwidth_fraction}) {
    f(*p);
  }
  return c;
}

template <class F>
GemmCurve each(GemmCurve c, const F& f) {
  for (Parameter* const p : {&c.start_up_us, &c.peak_fraction, &c.prologue_k, &c.smooth_waves}) {
    f(*p);
  }
  return c;
}

template <class F>
AttentionCurve each(AttentionCurve c, const F& f) {
  for (Parameter* const p : {&c.start_up_us, &c.row_ns, &c.edge_pairs, &c.window_pairs,
                             &c.peak_fraction, &c.at_64, &c.at_192, &c.at_256}) {
    f(*p);
  }
  return c;
}

constexpr auto kRound = [](Parameter& p) { p.value = rounded(p.value); };

auto carry(const std::string& from) {
  return [&from](Parameter& p) { p = carried(p, from); };
}

}  // namespace

double rounded(double value) {
  constexpr double kNothing = 1e-3;
  if (std::abs(value) < kNothing) {
    return 0.0;
  }
  // A whole number over a power of ten is the double nearest to the decimal fraction: it reads back
  // equal.
  const double exponent = 2.0 - std::floor(std::log10(std::abs(value)));
  const double scale = std::pow(10.0, std::abs(exponent));
  return exponent >= 0.0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

BandwidthCurve rounded(BandwidthCurve curve) { return each(std::move(curve), kRound); }

GemmCurve rounded(GemmCurve curve) { return each(std::move(curve), kRound); }

AttentionCurve rounded(AttentionCurve curve) { return each(std::move(curve), kRound); }

Parameter carried(Parameter parameter, const std::string& from) {
  if (parameter.evidence != Evidence::Prior) {
    parameter.evidence = Evidence::Prior;
    parameter.source += std::string(kCarriedOver) + from;
  }
  return parameter;
}

BandwidthCurve carried(BandwidthCurve curve, const std::string& from) {
  return each(std::move(curve), carry(from));
}

GemmCurve carried(GemmCurve curve, const std::string& from) {
  return each(std::move(curve), carry(from));
}

AttentionCurve carried(AttentionCurve curve, const std::string& from) {
  return each(std::move(curve), carry(from));
}

}  // namespace dipsim
