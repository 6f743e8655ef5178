// Package queries is what instances and programs ask each other beside links and gossip: the
// services Query, Admin and Cluster of transport/wire/mortise/query/v1. It decides which asker may
// ask what, and makes the messages of what the rooms have.
//
//	asker                                        asked instance
//	Ask(client, method, question) ── transport ──▶ Guard ──▶ Query    replica.Question, at the leader
//	                                                     ├──▶ Admin   the root package's own methods
//	                                                     └──▶ Cluster package cluster
//
// An instance that leads asks itself the same way, without the network ([transport.Services.As]).
//
// # Guarantees
//
// No method is called before [Guard.Intercept] has let the question pass: it is the only place that
// compares a question with a tier or a right. A question for a program is checked twice: by the
// instance that the program is connected with, which needs no leader for that, and by the leader,
// to which that instance forwards the rights ([query.Origin]). What a connection proves of a holder
// of a derived secret takes the place of anything that it says.
//
// # Concurrency
//
// Everything is safe for concurrent use, and waits no longer than its context.
//
// # Failure
//
// An answer is either the message of the method or a [Failed]. The holder of a derived secret that
// asks what only instances may gets no answer, as from a port that knows no such question.
//
// # Limits
//
// Package transport bounds questions and answers by their bytes, and how many one instance may
// have. A question has no lists. Lists and texts of an answer about the voters are bounded behind
// the decoding, since they are kept.
//
// # Refused alternative
//
// Checks in each method, as they once were: eleven places for one rule, of which one that forgets
// it shows nothing.
package queries
