// SPDX-License-Identifier: Apache-2.0
// The program that a library is linked into whole: tests/CMakeLists.txt.

int main() { return 0; }
