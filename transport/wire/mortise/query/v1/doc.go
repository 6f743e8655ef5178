// Package query contains the generated code for the questions that instances and programs send each
// other; see query.proto, admin.proto and cluster.proto. Only this comment is written by hand.
// After a change to a .proto file, run
//
//	sh transport/wire/generate.sh
//
// The field layouts are the contract between versions of mortise. Package internal/queries builds
// the messages and decides which questions a sender may ask.
package query
