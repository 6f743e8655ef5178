// Package queries implements the questions that instances and programs send each other outside
// links and gossip: the services Query, Admin and Cluster of transport/wire/mortise/query/v1. It
// decides which questions a sender may ask, and converts between messages and the types of other
// packages.
//
//	asker                                        asked instance
//	Ask(client, method, question) ── transport ──▶ Guard ──▶ Query    replica.Question, at the leader
//	                                                     ├──▶ Admin   the root package's own methods
//	                                                     └──▶ Cluster package cluster
//
// If the asking instance is itself the leader, the question takes the same path but without the
// network ([transport.Services.As]).
//
// # Guarantees
//
// No method is called before [Guard.Intercept] has accepted the question. Only Intercept checks
// tiers and rights. A question of a program is checked twice. First the instance to which the
// program is connected checks it, even if there is no leader. Then the leader checks it, with the
// rights that this instance forwards ([query.Origin]). If the program has a derived secret, the
// rights that its connection proves replace the rights that it claims.
//
// # Concurrency
//
// Everything is safe for concurrent use, and every call returns when its context ends.
//
// # Failure
//
// An answer is either the message of the method or a [Failed]. To a question that only instances
// may ask, the holder of a derived secret gets no answer, as if the port did not have the service.
//
// # Limits
//
// Package transport limits the size of questions and answers, and the number of questions of one
// instance. Questions contain no lists. The lists and texts in an answer about the voters are
// limited after decoding, because they are kept.
//
// # Refused alternative
//
// Each method could check the rights itself. Then the same rule would be in eleven places, and no
// test would detect a method that does not check.
package queries
