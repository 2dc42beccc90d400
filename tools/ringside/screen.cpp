#include "tools/ringside/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace {

constexpr const char* kTake = "\033[?1049h\033[?25l";  // the other screen, no cursor
constexpr const char* kGiveBack = "\033[?25h\033[?1049l";

}  // namespace

bool Screen::is_there() {
    const char* const kind = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

Screen::Screen() {
    has_keys_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &former_) == 0;
    if (has_keys_) {
        termios raw = former_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    static_cast<void>(print(kTake));
}

Screen::~Screen() {
    static_cast<void>(print(kGiveBack));
    if (has_keys_) {
        ::tcsetattr(STDIN_FILENO, TCSANOW, &former_);
    }
}

Screen::Size Screen::size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col == 0) {
        return {24, 80};
    }
    return {size.ws_row, size.ws_col};
}

void Screen::draw(const std::string& title, const std::string& text) {
    std::string frame = "\033[H\033[7m" + title + "\033[0m\033[K";
    // Lines are parted, not ended: one that ends the last line would scroll.
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
        frame += "\r\n" + text.substr(at, end - at) + "\033[K";
    }
    static_cast<void>(print(frame + "\033[J"));
}

Screen::Key Screen::take_key() const {
    constexpr char kCtrlC = 3;
    std::array<char, 64> bytes{};
    const ssize_t size = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    const std::string_view pressed(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    // At its end, as where the terminal has gone, it stays readable.
    if (size <= 0 || pressed.find_first_of(std::string{'q', 'Q', kCtrlC}) != std::string::npos) {
        return Key::kQuit;
    }
    if (pressed.ends_with("\033[A") || pressed.ends_with("\033OA") || pressed.ends_with('k')) {
        return Key::kUp;
    }
    return pressed.ends_with("\033[B") || pressed.ends_with("\033OB") || pressed.ends_with('j')
               ? Key::kDown
               : Key::kNone;
}

}  // namespace ringside::tools
