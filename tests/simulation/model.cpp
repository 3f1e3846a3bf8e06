#include "simulation/model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace latchkey::simulation {

namespace {

constexpr std::string_view kNotANumber = "-ERR value is not an integer or out of range\r\n";

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

Value& Model::make(const std::string& key, Value::Type type) {
  Value& value = values_[key];
  value.type = type;
  return value;
}

void Model::expire(int64_t now_ms) {
  std::erase_if(values_, [now_ms](const auto& entry) {
    return entry.second.deadline_ms != 0 && entry.second.deadline_ms <= now_ms;
  });
}

std::string Model::run(const Words& words, int64_t now_ms) {
  expire(now_ms);
  const std::string& name = words[0];
  if (is_one_of(name, {"ECHO", "PING"})) return bulk(words[1]);
  const auto it = values_.find(words[1]);
  Value* found = it == values_.end() ? nullptr : &it->second;
  if (is_one_of(name, {"SET", "SETNX", "GET", "GETSET", "INCR", "APPEND"}))
    return on_string(words, found);
  if (is_one_of(name, {"RPUSH", "LPOP", "LRANGE"})) return on_list(words, found);
  if (is_one_of(name, {"HSET", "HGET", "HDEL", "ZADD", "ZSCORE", "ZREM"}))
    return on_fields(words, found);
  if (is_one_of(name, {"DEL", "EXISTS", "PEXPIRE", "PERSIST"})) return on_key(words, found, now_ms);
  throw std::logic_error("the model does not know " + name);
}

std::string Model::on_string(const Words& words, Value* found) {
  const std::string& name = words[0];
  if (name == "GET") return found == nullptr ? std::string(kNull) : bulk(found->text);
  if (name == "SETNX") {
    if (found != nullptr) return integer(0);
    make(words[1], Value::Type::kString).text = words[2];
    return integer(1);
  }
  if (name == "SET" || name == "GETSET") {
    const std::string before = found == nullptr ? std::string(kNull) : bulk(found->text);
    Value value;
    value.text = words[2];
    values_[words[1]] = std::move(value);
    return name == "SET" ? std::string(kOk) : before;
  }
  if (name == "APPEND") {
    std::string& text = make(words[1], Value::Type::kString).text;
    text += words[2];
    return integer(static_cast<int64_t>(text.size()));
  }
  std::string& text = make(words[1], Value::Type::kString).text;
  if (text.find_first_not_of("0123456789") != std::string::npos) return std::string(kNotANumber);
  const int64_t number = (text.empty() ? 0 : std::stoll(text)) + 1;
  text = std::to_string(number);
  return integer(number);
}

std::string Model::on_list(const Words& words, Value* found) {
  if (words[0] == "RPUSH") {
    std::vector<std::string>& list = make(words[1], Value::Type::kList).list;
    list.insert(list.end(), words.begin() + 2, words.end());
    return integer(static_cast<int64_t>(list.size()));
  }
  if (words[0] == "LRANGE") {
    if (found == nullptr) return "*0\r\n";
    std::string reply = "*" + std::to_string(found->list.size()) + "\r\n";
    for (const std::string& element : found->list) reply += bulk(element);
    return reply;
  }
  if (found == nullptr) return std::string(kNull);
  std::string reply = bulk(found->list.front());
  found->list.erase(found->list.begin());
  if (found->list.empty()) values_.erase(words[1]);
  return reply;
}

std::string Model::on_fields(const Words& words, Value* found) {
  const std::string& name = words[0];
  if (name == "HGET" || name == "ZSCORE") {
    if (found == nullptr || !found->fields.contains(words[2])) return std::string(kNull);
    return bulk(found->fields[words[2]]);
  }
  if (name == "HDEL" || name == "ZREM") {
    const size_t removed = found == nullptr ? 0 : found->fields.erase(words[2]);
    if (found != nullptr && found->fields.empty()) values_.erase(words[1]);
    return integer(static_cast<int64_t>(removed));
  }
  const bool is_hash = name == "HSET";
  Value& value = make(words[1], is_hash ? Value::Type::kHash : Value::Type::kSortedSet);
  // HSET key field value, ZADD key score member
  const std::string& field = is_hash ? words[2] : words[3];
  const bool is_new = !value.fields.contains(field);
  value.fields[field] = is_hash ? words[3] : words[2];
  return integer(is_new ? 1 : 0);
}

std::string Model::on_key(const Words& words, Value* found, int64_t now_ms) {
  if (words[0] == "EXISTS") return integer(found != nullptr ? 1 : 0);
  if (words[0] == "DEL") return integer(static_cast<int64_t>(values_.erase(words[1])));
  if (found == nullptr) return integer(0);
  if (words[0] == "PERSIST") {
    const bool had_one = found->deadline_ms != 0;
    found->deadline_ms = 0;
    return integer(had_one ? 1 : 0);
  }
  found->deadline_ms = now_ms + std::stoll(words[2]);
  return integer(1);
}

std::string Model::text() const {
  std::string text;
  for (const auto& [key, value] : values_) {
    text += key + "=" + value.text.substr(0, 40);
    for (const std::string& element : value.list) text += "," + element.substr(0, 40);
    for (const auto& [field, content] : value.fields)
      text += "," + field + ":" + content.substr(0, 40);
    if (value.deadline_ms != 0) text += "@" + std::to_string(value.deadline_ms);
    text += " ";
  }
  return text;
}

}  // namespace latchkey::simulation
