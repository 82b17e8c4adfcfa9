# SPDX-License-Identifier: Apache-2.0
# lib.bash: real container engines for tests and benchmarks: private ones, with no network and nothing of the machine
# touched (keeper says how). For a try by hand:
#
#   tests/engine/run KIND [COMMAND...]     runs the command (a shell when none is given) with DOCKER_HOST set to a new
#                                          engine that holds the test images; KIND: docker, docker-runsc, podman
#
# Scripts source this after tests/e2e/lib.bash and say:
#
#   engine_start KIND          exports DOCKER_HOST=unix://... and sets engine_folder, engine_gateway (how a container
#                              on the bridge finds what engine_net serves; empty: no bridge here, engine_no_bridge says
#                              why) and engine_runsc ("yes": runsc is registered). Takes the engine that ctest started
#                              for all tests (tests/engine/shared); else starts one. Skips the test where none can run.
#   engine_start --own KIND    always a new one, for a test that stops it or counts what it holds
#   engine_stop                ends it before the script ends (only one's own); by itself it happens at the end
#   engine_image NAME FLAVOUR [CHANGE...]   imports a test image unless NAME is there; flavours: image says them; CHANGE:
#                              a Dockerfile instruction such as 'VOLUME /data'
#   engine_api METHOD PATH...  one request to it (api says how)
#   engine_net COMMAND...      runs it in the engine's network (loopback, bridge): what a test serves for a container
#   registry_start [USER PASSWORD]   sets registry=127.0.0.1:PORT, plain http, seen by the engine only; without a user
#                              the engine's own, which is also its mirror of docker.io: what is pushed to
#                              $registry/library/NAME is pulled as NAME
#   registry_push IMAGE NAME:TAG [USER PASSWORD]   puts a local image there, as $registry/NAME:TAG, and forgets that name
#
# What was started ends with the script, however it ends.

engine_tools=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
engine_folder='' engine_is_own='' engine_gateway='' engine_no_bridge='' engine_runsc='' engine_registry='' registry=''
# In a sanitized build the programs under test start the guest as it is shipped: an image has no sanitizer's library.
if [ -n "${sandhost:-}" ] && [ -x "${SANDHOST_BUILD:-/nonexistent}/shipped/bin/sandhost" ]; then
  sandhost=$SANDHOST_BUILD/shipped/bin/sandhost
fi
declare -p at_exit >/dev/null 2>&1 || at_exit=()

engine_fact() { sed -n "s/^$1=//p" "$engine_folder/facts"; }

engine_use() { # FOLDER
  engine_folder=$1
  DOCKER_HOST=$(engine_fact host)
  export DOCKER_HOST
  engine_gateway=$(engine_fact gateway)
  engine_no_bridge=$(engine_fact no_bridge)
  engine_runsc=$(engine_fact runsc)
  engine_registry=$(engine_fact registry)
}

engine_start() {
  local own='' kind said code=0 folder
  [ "$1" != --own ] || {
    own=yes
    shift
  }
  kind=$1
  local shared=${SANDHOST_BUILD:-/nonexistent}/engines/$kind
  if [ -z "$own" ] && [ -f "$shared" ]; then
    said=$(<"$shared")
    case $said in
    unable\ *) skip "${said#unable }" ;;
    /*)
      if [ -S "$said/docker.sock" ]; then
        engine_use "$said"
        return
      fi
      ;;
    esac
  fi
  folder=$(mktemp -d /tmp/sandhost-engine.XXXXXX)
  said=$("$engine_tools/keeper" start "$kind" "$folder" $$) || code=$?
  if [ "$code" -eq 77 ]; then
    skip "no $kind engine: $said"
  elif [ "$code" -ne 0 ]; then
    echo "no $kind engine: $said" >&2
    return 1
  fi
  engine_use "$folder"
  engine_is_own=yes
  at_exit+=(engine_stop)
}

engine_stop() {
  [ -n "$engine_is_own" ] || return 0
  engine_is_own=''
  "$engine_tools/keeper" stop "$engine_folder"
}

engine_api() { "$engine_tools/api" "$@"; }

engine_escape() { # TEXT
  /usr/bin/python3 -ISc 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$1"
}

engine_image() {
  local name=$1 flavour=$2 changes='' change
  shift 2
  [[ ${name##*/} == *:* ]] || name=$name:latest
  ! engine_api GET "/images/$name/json" >/dev/null 2>&1 || return 0
  for change in "$@"; do changes+="&changes=$(engine_escape "$change")"; done
  case $flavour in
  python) changes+="&changes=CMD%20python3" ;;
  busybox | debian) changes+="&changes=CMD%20sh" ;;
  esac
  changes+="&changes=ENV%20PATH%3D/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  "$engine_tools/image" "$flavour" |
    engine_api POST "/images/create?fromSrc=-&repo=$(engine_escape "$name")$changes" --body - >/dev/null
}

# The words before a command that is to run there, so that `kill $!` and the end of the script end it.
engine_into() { # NAMESPACE...
  engine_words=(setpriv --pdeathsig KILL -- nsenter -t "$(<"$engine_folder/first.pid")" "$@" -- setpriv --pdeathsig KILL --)
}

engine_net() {
  local engine_words
  engine_into --net --pid
  "${engine_words[@]}" "$@"
}

registry_start() {
  [ -n "$engine_registry" ] || skip "docker-registry is not installed"
  if [ $# -eq 0 ]; then
    registry=$engine_registry
    return
  fi
  local port folder until salt engine_words
  mkdir -p "$engine_folder/registries"
  for ((port = 5001; port < 5032; port++)); do
    mkdir "$engine_folder/registries/$port" 2>/dev/null && break
  done
  folder=$engine_folder/registries/$port
  salt=$(head -c 11 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
  perl -e 'print "$ARGV[0]:", crypt($ARGV[1], "\$2y\$05\$$ARGV[2]"), "\n"' "$1" "$2" "${salt}" >"$folder/users"
  cat >"$folder/registry.yml" <<END
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $folder/data}, delete: {enabled: true}}
http: {addr: "127.0.0.1:$port"}
auth: {htpasswd: {realm: tests, path: $folder/users}}
END
  engine_into --net --pid
  "${engine_words[@]}" docker-registry serve "$folder/registry.yml" >"$folder/log" 2>&1 </dev/null &
  at_exit+=("kill $! 2>/dev/null; rm -rf '$folder'")
  registry=127.0.0.1:$port
  until=$((SECONDS + 120))
  until engine_net /usr/bin/python3 -ISc 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))' "$port" 2>/dev/null; do
    [ "$SECONDS" -lt "$until" ] || fail "the registry does not start: $(tail -n 5 "$folder/log")"
    sleep 0.05
  done
}

registry_push() {
  local image=$1 name=$registry/${2%:*} tag=${2##*:}
  shift 2
  engine_api POST "/images/$image/tag?repo=$(engine_escape "$name")&tag=$tag" >/dev/null
  if [ $# -eq 2 ]; then
    engine_api POST "/images/$name/push?tag=$tag" --auth "$@" >/dev/null
  else
    engine_api POST "/images/$name/push?tag=$tag" >/dev/null
  fi
  engine_api DELETE "/images/$name:$tag?noprune=1" >/dev/null
}

# What everybody finds in an engine by these names; python:3.12-slim is also at the mirror.
engine_images() {
  engine_image busybox busybox
  engine_image empty empty
  engine_image python:3.12-slim python
  [ -z "$engine_registry" ] || {
    registry_start
    registry_push python:3.12-slim library/python:3.12-slim
  }
}
