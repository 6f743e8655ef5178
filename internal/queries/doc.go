// Package queries implements the questions that instances and programs ask each other outside links
// and gossip: the services Query, Admin and Cluster of transport/wire/mortise/query/v1. It decides
// which asker may ask what, and converts between messages and the types of other packages.
//
//	asker                                        asked instance
//	Ask(client, method, question) ── transport ──▶ Guard ──▶ Query    replica.Question, at the leader
//	                                                     ├──▶ Admin   the root package's own methods
//	                                                     └──▶ Cluster package cluster
//
// A leading instance asks itself the same way, without the network ([transport.Services.As]).
//
// # Guarantees
//
// [Guard.Intercept] must let a question pass before any method is called: only there is a question
// compared with a tier or a right. A program's question is checked twice: by the instance to which
// the program is connected, which needs no leader for that, and by the leader, to which that
// instance forwards the rights ([query.Origin]). What the connection of a derived secret's holder
// authenticates replaces what the holder claims.
//
// # Concurrency
//
// Everything is safe for concurrent use and returns when its context ends.
//
// # Failure
//
// An answer is either the message of the method or a [Failed]. If the holder of a derived secret
// asks what only instances may ask, it gets no answer, as from a port without that service.
//
// # Limits
//
// Package transport limits the bytes of questions and answers, and the number of questions of one
// instance. A question has no lists. Lists and texts of an answer about the voters are limited
// after decoding, since they are kept.
//
// # Refused alternative
//
// Checks in each method: that was one rule in eleven places, and a method that forgot it failed no
// test.
package queries
