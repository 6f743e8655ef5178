// Package query is the generated code of what instances and programs ask each other, see
// query.proto, admin.proto and cluster.proto. Nothing here is written by hand but this comment;
// after a change to a .proto file run
//
//	sh transport/wire/generate.sh
//
// The field layouts are the contract between versions of mortise. Package internal/queries decides
// which asker may ask what, and makes the messages of what the rooms have; package transport
// carries them.
package query
