#include "relay/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <fstream>

#include "relay/socket.hpp"

namespace balanceroute::relay_bench {

Child::Child(const std::function<void()>& body) : pid_{::fork()} {
  if (pid_ < 0) give_up("fork");
  if (pid_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  ::_exit(1);
}

Child::Child(const std::vector<std::string>& command, const std::string& log)
    : Child{[&] {
        const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(out, STDERR_FILENO);
        std::vector<char*> arguments;
        for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        ::execvp(arguments[0], arguments.data());
        give_up(command[0]);
      }} {}

Child::~Child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::chrono::nanoseconds Child::cpu_time() const {
  std::chrono::nanoseconds sum{0};
  for (const auto& task : std::filesystem::directory_iterator{fmt::format("/proc/{}/task", pid_)}) {
    std::ifstream stat{task.path() / "schedstat"};
    std::int64_t on_cpu = 0;
    stat >> on_cpu;
    sum += std::chrono::nanoseconds{on_cpu};
  }
  return sum;
}

std::int64_t Child::resident_kib() const {
  std::ifstream status{fmt::format("/proc/{}/status", pid_)};
  std::string word;
  while (status >> word) {
    if (word != "VmRSS:") continue;
    std::int64_t kib = 0;
    status >> kib;
    return kib;
  }
  give_up("VmRSS");
}

}  // namespace balanceroute::relay_bench
