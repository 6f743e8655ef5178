// Package queries implements the services Query, Admin and Cluster of
// transport/wire/mortise/query/v1. Instances and programs use these services for all questions
// that are not sent on a link or by gossip. The package decides which questions a sender may ask,
// and converts between messages and the types of other packages.
//
//	asker                                        asked instance
//	Ask(client, method, question) ── transport ──▶ Guard ──▶ Query    replica.Question, at the leader
//	                                                     ├──▶ Admin   the root package's own methods
//	                                                     └──▶ Cluster package cluster
//
// If the asking instance is the leader, the question takes the same path without the network
// ([transport.Services.As]).
//
// # Guarantees
//
// No method is called before [Guard.Intercept] has accepted the question. Only Intercept checks
// tiers and rights. A question of a program is checked twice. The instance to which the program
// is connected checks it first, even if there is no leader. Then the leader checks it, with the
// rights that this instance forwards ([query.Origin]). If a program has a derived secret, the
// rights that its connection proves replace the rights that it claims.
//
// # Concurrency
//
// Everything is safe for concurrent use, and every call returns when its context ends. [Watches]
// has one goroutine while there are callers. A caller that does not read its events delays no
// other: when 1,024 of them wait, it asks for the others itself.
//
// # Failure
//
// An answer is either the message of the method or a [Failed]. The holder of a derived secret gets
// no answer to a question that only instances may ask, as if the port did not have the service.
//
// # Limits
//
// Package transport limits the size of questions and answers, and the number of questions of one
// instance. Package replica limits the pending questions and the watches of one instance and of
// one derived secret. A watch has at most 256 prefixes with 8 KiB. The lists and texts in an
// answer about the voters are limited after decoding, because they are kept.
//
// # Refused alternative
//
// Each method could check the rights itself. But no test would detect a method that does not check.
package queries
