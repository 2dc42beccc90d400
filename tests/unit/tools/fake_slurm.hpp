// squeue and scontrol as a test wants them, found before a machine's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "temporary_directory.hpp"

namespace ringside::tools {

class FakeSlurm {
public:
    /// @param jobs   what squeue prints: "4242_7 4250 n[1-2]"
    /// @param hosts  what an "n[1-2]" is: "n1 n2"; each node is on this host
    FakeSlurm(const std::string& jobs, const std::string& hosts) {
        write("squeue", "printf '%s\\n' '" + jobs + "'");
        write("scontrol", "echo \"$2\" >> " + calls() +
                              "\nif [ \"$2\" = hostnames ]; then printf '%s\\n' " + hosts +
                              "; exit; fi\n"
                              "for name in $(echo \"$4\" | tr , ' '); do echo "
                              "\"NodeName=$name Arch=x NodeAddr=127.0.0.1 OS=Linux\"; done");
        ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    }
    ~FakeSlurm() { ::setenv("PATH", path_.c_str(), 1); }

    /// What scontrol was asked to show, in order.
    std::vector<std::string> asked() const {
        std::ifstream file(calls());
        std::vector<std::string> words;
        for (std::string word; file >> word;) {
            words.push_back(word);
        }
        return words;
    }

private:
    std::string calls() const { return (folder_.path() / "calls").string(); }
    void write(const std::string& name, const std::string& script) const {
        const auto path = folder_.path() / name;
        std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }

    TemporaryDirectory folder_;
    std::string path_ = std::getenv("PATH");
};

}  // namespace ringside::tools
