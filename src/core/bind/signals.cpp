// A mapped file that is cut short ends its process, and with it must go one line that says so.
//
// The system sends SIGBUS to whoever reads a page that its file no longer has, or that the disk
// cannot give. That happens in the midst of a kernel, to which nothing can be returned, and where
// Python is not asked: the handler writes a line that is ready, and ends.
#include <csignal>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

#include "bind/families.hpp"

namespace didyma {

void bind_signals(nanobind::module_ m) {
    m.def("end_on_bus_error", [](const std::string& line) {
#if defined(SIGBUS)
        static std::string last_words;
        last_words = line;
        std::signal(SIGBUS, [](int) {
            if (write(STDERR_FILENO, last_words.data(), last_words.size()) < 0) _exit(2);
            _exit(1);
        });
#else
        static_cast<void>(line);
#endif
    });
}

}  // namespace didyma
