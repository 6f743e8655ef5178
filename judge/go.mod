module github.com/mortise-lock/mortise/judge

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/mortise-lock/mortise v0.0.0
)

require (
	go.etcd.io/bbolt v1.5.0 // indirect
	go.etcd.io/raft/v3 v3.7.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/mortise-lock/mortise => ../
