# Sourced by the scripts that go to the clone's root: what a user names lies in the user's folder, not there.

# The path of a file or folder, which need not be there.
user_path() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$PWD/$1" ;;
    esac
}

# The same for a program; one without a slash is looked up on PATH. No link is followed: a virtual environment's python is one, and knows by its place.
user_program() {
    if [[ $1 == */* ]]; then user_path "$1"; else printf '%s\n' "$1"; fi
}
