#include "base/text/shortest_digits.h"

#include <bit>
#include <cstdint>

#include "base/assert.h"

namespace latchkey::base {

namespace {

// significand * 2^exponent.
struct Scaled {
  uint64_t significand;
  int exponent;
};

// 10^k for k = -348, -340, ... 340: 64 bits of significand, rounded to nearest.
constexpr int kFirstPower = -348;
constexpr int kPowerStep = 8;
constexpr Scaled kScaledPowers[] = {
    {0xFA8FD5A0081C0288, -1220}, {0xBAAEE17FA23EBF76, -1193}, {0x8B16FB203055AC76, -1166},
    {0xCF42894A5DCE35EA, -1140}, {0x9A6BB0AA55653B2D, -1113}, {0xE61ACF033D1A45DF, -1087},
    {0xAB70FE17C79AC6CA, -1060}, {0xFF77B1FCBEBCDC4F, -1034}, {0xBE5691EF416BD60C, -1007},
    {0x8DD01FAD907FFC3C, -980},  {0xD3515C2831559A83, -954},  {0x9D71AC8FADA6C9B5, -927},
    {0xEA9C227723EE8BCB, -901},  {0xAECC49914078536D, -874},  {0x823C12795DB6CE57, -847},
    {0xC21094364DFB5637, -821},  {0x9096EA6F3848984F, -794},  {0xD77485CB25823AC7, -768},
    {0xA086CFCD97BF97F4, -741},  {0xEF340A98172AACE5, -715},  {0xB23867FB2A35B28E, -688},
    {0x84C8D4DFD2C63F3B, -661},  {0xC5DD44271AD3CDBA, -635},  {0x936B9FCEBB25C996, -608},
    {0xDBAC6C247D62A584, -582},  {0xA3AB66580D5FDAF6, -555},  {0xF3E2F893DEC3F126, -529},
    {0xB5B5ADA8AAFF80B8, -502},  {0x87625F056C7C4A8B, -475},  {0xC9BCFF6034C13053, -449},
    {0x964E858C91BA2655, -422},  {0xDFF9772470297EBD, -396},  {0xA6DFBD9FB8E5B88F, -369},
    {0xF8A95FCF88747D94, -343},  {0xB94470938FA89BCF, -316},  {0x8A08F0F8BF0F156B, -289},
    {0xCDB02555653131B6, -263},  {0x993FE2C6D07B7FAC, -236},  {0xE45C10C42A2B3B06, -210},
    {0xAA242499697392D3, -183},  {0xFD87B5F28300CA0E, -157},  {0xBCE5086492111AEB, -130},
    {0x8CBCCC096F5088CC, -103},  {0xD1B71758E219652C, -77},   {0x9C40000000000000, -50},
    {0xE8D4A51000000000, -24},   {0xAD78EBC5AC620000, 3},     {0x813F3978F8940984, 30},
    {0xC097CE7BC90715B3, 56},    {0x8F7E32CE7BEA5C70, 83},    {0xD5D238A4ABE98068, 109},
    {0x9F4F2726179A2245, 136},   {0xED63A231D4C4FB27, 162},   {0xB0DE65388CC8ADA8, 189},
    {0x83C7088E1AAB65DB, 216},   {0xC45D1DF942711D9A, 242},   {0x924D692CA61BE758, 269},
    {0xDA01EE641A708DEA, 295},   {0xA26DA3999AEF774A, 322},   {0xF209787BB47D6B85, 348},
    {0xB454E4A179DD1877, 375},   {0x865B86925B9BC5C2, 402},   {0xC83553C5C8965D3D, 428},
    {0x952AB45CFA97A0B3, 455},   {0xDE469FBD99A05FE3, 481},   {0xA59BC234DB398C25, 508},
    {0xF6C69A72A3989F5C, 534},   {0xB7DCBF5354E9BECE, 561},   {0x88FCF317F22241E2, 588},
    {0xCC20CE9BD35C78A5, 614},   {0x98165AF37B2153DF, 641},   {0xE2A0B5DC971F303A, 667},
    {0xA8D9D1535CE3B396, 694},   {0xFB9B7CD9A4A7443C, 720},   {0xBB764C4CA7A44410, 747},
    {0x8BAB8EEFB6409C1A, 774},   {0xD01FEF10A657842C, 800},   {0x9B10A4E5E9913129, 827},
    {0xE7109BFBA19C0C9D, 853},   {0xAC2820D9623BF429, 880},   {0x80444B5E7AA7CF85, 907},
    {0xBF21E44003ACDD2D, 933},   {0x8E679C2F5E44FF8F, 960},   {0xD433179D9C8CB841, 986},
    {0x9E19DB92B4E31BA9, 1013},  {0xEB96BF6EBADF77D9, 1039},  {0xAF87023B9BF0EE6B, 1066},
};
constexpr int kPowerCount = static_cast<int>(sizeof kScaledPowers / sizeof kScaledPowers[0]);

// The scaled value's exponent must leave its integral part 32 bits and its fraction room for a
// multiplication by ten.
constexpr int kLowestExponent = -60;
constexpr int kHighestExponent = -32;

constexpr uint64_t kSmallPowersOfTen[] = {1,      10,      100,      1000,      10000,
                                          100000, 1000000, 10000000, 100000000, 1000000000};

Scaled normalized(Scaled value) {
  const int shift = std::countl_zero(value.significand);
  return {value.significand << shift, value.exponent - shift};
}

// The upper 64 bits of the product, rounded half up.
Scaled product(Scaled left, Scaled right) {
  __extension__ using Wide = unsigned __int128;
  const Wide exact = static_cast<Wide>(left.significand) * right.significand;
  const uint64_t rounded = static_cast<uint64_t>((exact + (Wide{1} << 63)) >> 64);
  return {rounded, left.exponent + right.exponent + 64};
}

// The index of the power of ten whose product with the value has an exponent in [kLowestExponent,
// kHighestExponent].
int power_index(int exponent) {
  constexpr double kLog10Of2 = 0.30102999566398120;
  int index = static_cast<int>(-(exponent + kPowerCount) * kLog10Of2 - kFirstPower) / kPowerStep;
  for (;;) {
    const int scaled = exponent + kScaledPowers[index].exponent + 64;
    if (scaled < kLowestExponent) {
      ++index;
    } else if (scaled > kHighestExponent) {
      --index;
    } else {
      return index;
    }
  }
}

// The interval of numbers that read back as the value, scaled: [upper - width, upper]; the value
// lies at upper - to_value.
struct Interval {
  Scaled upper;
  uint64_t width;
  uint64_t to_value;
};

// Decrements the last digit while that brings the text nearer to the value and keeps it in the
// interval. `rest` is upper minus the digits so far, `unit` the weight of the last digit.
void approach(char* last, uint64_t width, uint64_t rest, uint64_t unit, uint64_t to_value) {
  while (rest < to_value && width - rest >= unit &&
         (rest + unit < to_value || to_value - rest > rest + unit - to_value)) {
    --*last;
    rest += unit;
  }
}

// Writes digits of interval.upper until the remainder is within the interval.
ShortestDigits generate(Interval interval, int power, char* out) {
  const int fraction_bits = -interval.upper.exponent;
  const uint64_t one = uint64_t{1} << fraction_bits;
  auto integral = static_cast<uint32_t>(interval.upper.significand >> fraction_bits);
  uint64_t fraction = interval.upper.significand & (one - 1);
  int length = 0;

  for (int position = 9; position >= 0; --position) {
    const auto weight = static_cast<uint32_t>(kSmallPowersOfTen[position]);
    const uint32_t digit = integral / weight;
    integral -= digit * weight;
    if (digit != 0 || length != 0) out[length++] = static_cast<char>('0' + digit);
    const uint64_t rest = (static_cast<uint64_t>(integral) << fraction_bits) + fraction;
    if (rest <= interval.width) {
      approach(out + length - 1, interval.width, rest,
               static_cast<uint64_t>(weight) << fraction_bits, interval.to_value);
      return {length, power + position};
    }
  }
  for (int position = -1;; --position) {
    fraction *= 10;
    interval.width *= 10;
    interval.to_value *= 10;
    const uint64_t digit = fraction >> fraction_bits;
    fraction &= one - 1;
    if (digit != 0 || length != 0) out[length++] = static_cast<char>('0' + digit);
    if (fraction < interval.width) {
      approach(out + length - 1, interval.width, fraction, one, interval.to_value);
      return {length, power + position};
    }
  }
}

}  // namespace

ShortestDigits shortest_digits(double value, char* out) {
  constexpr int kMantissaBits = 52;
  constexpr int kExponentBias = 1075;
  constexpr uint64_t kHiddenBit = uint64_t{1} << kMantissaBits;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int biased = static_cast<int>(bits >> kMantissaBits) & 0x7FF;
  const uint64_t mantissa = bits & (kHiddenBit - 1);
  LK_ASSERT(biased != 0x7FF && (biased != 0 || mantissa != 0));

  const uint64_t significand = biased != 0 ? mantissa | kHiddenBit : mantissa;
  const int exponent = biased != 0 ? biased - kExponentBias : 1 - kExponentBias;
  // The midpoints to the neighbours; below a power of two the neighbour is half as far.
  const Scaled upper = normalized({2 * significand + 1, exponent - 1});
  Scaled lower = significand == kHiddenBit ? Scaled{4 * significand - 1, exponent - 2}
                                           : Scaled{2 * significand - 1, exponent - 1};
  lower = {lower.significand << (lower.exponent - upper.exponent), upper.exponent};

  const int index = power_index(upper.exponent);
  const Scaled power = kScaledPowers[index];
  const Scaled middle = product(normalized({significand, exponent}), power);
  Scaled high = product(upper, power);
  Scaled low = product(lower, power);
  // One unit inwards on both sides compensates for the inexact power.
  --high.significand;
  ++low.significand;
  const Interval interval{high, high.significand - low.significand,
                          high.significand - middle.significand};
  return generate(interval, -(kFirstPower + index * kPowerStep), out);
}

}  // namespace latchkey::base
