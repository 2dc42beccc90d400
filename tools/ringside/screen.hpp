// A terminal's other screen: taken and given back, drawn on whole, with the keys that are pressed meanwhile.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>

namespace ringside::tools {

/// While it lives stdout shows the other screen, and stdin's keys come at once and unechoed; Ctrl-C among them.
/// @thread main thread
class Screen {
public:
    Screen();
    ~Screen();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    /// Whether stdout is a terminal that can.
    static bool is_there();

    struct Size {
        std::size_t lines;
        std::size_t columns;
    };
    static Size size();

    /// @param title  drawn inverse, above all
    static void draw(const std::string& title, const std::string& text);

    /// Of stdin; -1: that is no terminal.
    int keys() const { return has_keys_ ? 0 : -1; }
    enum class Key { kNone, kQuit, kUp, kDown };
    /// What waits of it. Several at once are the last one.
    Key take_key() const;

private:
    termios former_{};
    bool has_keys_ = false;
};

}  // namespace ringside::tools
