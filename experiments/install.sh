# Sourced by quickstart.sh and tests/run.sh: installs Debian packages that are missing, or says how and stops.

build_packages="g++ cmake ninja-build pkg-config openmpi-bin libopenmpi-dev libdnnl-dev ocl-icd-opencl-dev libhdf5-dev libyaml-cpp-dev
nlohmann-json3-dev libpugixml-dev libhwloc-dev libeigen3-dev libboost-program-options-dev libfmt-dev libssl-dev"

# install_missing PACKAGE...: apt-get as root or through sudo; otherwise prints the exact command and exits with 1.
install_missing() {
    local missing=()
    local package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local as_root=""
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
            echo "These packages are missing and need root to be installed. Run this, then start again:" >&2
            echo "    sudo apt-get install --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        as_root=sudo
    fi
    echo "installing ${missing[*]}" >&2
    $as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
