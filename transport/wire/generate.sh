#!/bin/sh
# Regenerates the Go code of the wire messages. Run it from anywhere after a change to a .proto
# file:
#
#     sh transport/wire/generate.sh
#
# It needs protoc (3.21 or later), protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2 on the PATH
# or in $(go env GOPATH)/bin.
set -eu
cd "$(dirname "$0")"
PATH="$PATH:$(go env GOPATH)/bin"
protoc -I . --go_out=. --go_opt=paths=source_relative \
    --go-grpc_out=. --go-grpc_opt=paths=source_relative \
    mortise/transport/v1/peer.proto mortise/query/v1/query.proto \
    mortise/query/v1/admin.proto mortise/query/v1/cluster.proto
# A detached comment in the .proto would become a second package comment; doc.go has the only one.
