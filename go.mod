module github.com/mortise-lock/mortise

go 1.26.0

// Each is the lowest version that works and has no known hole: a higher one is a matter of the
// program that uses this module. CONTRIBUTING.md says how to choose one.
require (
	github.com/hashicorp/memberlist v0.6.0 // below are data races; from v0.7.0 on consul/api and vault/sdk cannot be linked
	github.com/mortise-lock/mortise/locker v0.1.0 // of this repository
	go.etcd.io/bbolt v1.4.3
	go.etcd.io/raft/v3 v3.7.0 // messages are pointers since
	golang.org/x/sys v0.47.0 // grpc requires it
	google.golang.org/grpc v1.83.2 // CVE-2026-84303, 84304 and 84445
	google.golang.org/protobuf v1.36.11 // raft requires it
)

require (
	github.com/armon/go-metrics v0.4.1 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-metrics v0.6.0 // indirect
	github.com/hashicorp/go-msgpack/v2 v2.1.5 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/hashicorp/go-sockaddr v1.0.7 // indirect
	github.com/hashicorp/golang-lru v0.5.0 // indirect
	github.com/miekg/dns v1.1.73 // indirect
	github.com/sean-/seed v0.0.0-20170313163322-e2103e2c3529 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260526163538-3dc84a4a5aaa // indirect
)
