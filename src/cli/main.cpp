// main.cpp - the `balanceroute` command.
#include <cstdio>

int main() {
  std::puts("balanceroute " BALANCEROUTE_VERSION);
  return 0;
}
