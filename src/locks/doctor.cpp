#include "locks/doctor.h"

#include <vector>

#include "locks/lock_text.h"

namespace latchkey::locks {

namespace {

constexpr size_t kColumns = 78;
constexpr size_t kIndent = 3;

// Breaks a paragraph into lines.
std::string paragraph(std::string_view title, std::string_view text) {
  std::string result(kIndent, ' ');
  size_t column = kIndent;
  const std::string whole = std::string(title) + " " + std::string(text);
  for (size_t start = 0; start < whole.size();) {
    const size_t end = std::min(whole.find(' ', start), whole.size());
    if (column != kIndent && column + 1 + (end - start) > kColumns) {
      result += '\n' + std::string(kIndent, ' ');
      column = kIndent;
    }
    if (column != kIndent) {
      result += ' ';
      ++column;
    }
    result += whole.substr(start, end - start);
    column += end - start;
    start = end + 1;
  }
  return result + '\n';
}

std::string count_of(size_t number, const char* name) {
  return std::to_string(number) + " " + name + (number == 1 ? "" : "s");
}

std::string describe(const Finding& finding, size_t number, const server::Edition& edition) {
  const FindingDescription& words = description_of(finding.kind);
  std::string text = std::to_string(number) + ". " + std::string(words.name) + " (" +
                     std::string(name_of(words.severity)) + "): \"" +
                     printable(finding.place->key) + "\"";
  if (finding.place->database != 0)
    text += " in database " + std::to_string(finding.place->database);
  text += ", " + date_and_time(finding.last_ms);
  if (finding.times > 1) {
    text += ", the latest of " + std::to_string(finding.times) + " since " +
            date_and_time(finding.first_ms);
  }
  return text + '\n' + paragraph("What happened:", finding.evidence) +
         paragraph("What may go wrong:", words.danger) +
         paragraph("What to do instead:", remedy_of(finding.kind, edition));
}

std::string describe_state(const Record& record, int64_t now_ms) {
  const std::string name = "\"" + printable(record.place->key) + "\"";
  if (record.semaphore != nullptr) {
    return name + " is a semaphore; " + std::to_string(record.semaphore->there) + " of its " +
           count_of(static_cast<size_t>(record.semaphore->created), "token") + " are there.\n";
  }
  if (!record.hold) return name + " is held by nobody.\n";
  const Hold& hold = *record.hold;
  std::string text = name + " is held by " + hold.holder->shown() + " since " +
                     date_and_time(hold.since_ms) + " (" + duration(held_ms(hold, now_ms)) + ")";
  text += hold.deadline_ms < 0 ? ", without a deadline.\n"
                               : ", until " + date_and_time(hold.deadline_ms) + ".\n";
  return text;
}

}  // namespace

std::string diagnose(const LockModel& model, const Record* only, const server::Edition& edition,
                     int64_t since_ms, int64_t now_ms) {
  std::vector<const Finding*> shown;
  for (const Finding& finding : model.findings()) {
    if (only == nullptr || *finding.place == *only->place) shown.push_back(&finding);
  }
  std::string text;
  if (only == nullptr) {
    text = "I have watched locks since " + date_and_time(since_ms) + " and know " +
           count_of(model.records().size(), "lock") + ".\n";
  } else {
    text = describe_state(*only, now_ms);
  }
  if (shown.empty()) return text + "Nothing is wrong that I could see.\n";
  text += "There " + std::string(shown.size() == 1 ? "is " : "are ") +
          count_of(shown.size(), "finding") + ".\n";
  for (size_t i = 0; i < shown.size(); ++i) text += '\n' + describe(*shown[i], i + 1, edition);
  return text;
}

}  // namespace latchkey::locks
