// Package wire contains the generated code for the messages between nodes; see peer.proto. Only
// this comment is written by hand. After a change to the .proto file run
//
//	sh transport/wire/generate.sh
//
// The field layouts are the contract between versions of mortise. Only package transport uses
// this package.
package wire

//go:generate sh ../../../generate.sh
