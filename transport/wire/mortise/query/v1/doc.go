// Package query is the generated code of the questions that instances and programs ask each other;
// see query.proto, admin.proto and cluster.proto. Only this comment is written by hand; after a
// change to a .proto file run
//
//	sh transport/wire/generate.sh
//
// The field layouts are the contract between versions of mortise. Package internal/queries decides
// which asker may ask what, and builds the messages; package transport carries them.
package query
