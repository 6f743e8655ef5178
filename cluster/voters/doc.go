// Package voters will decide who votes in a group that is born.
//
// One pure function will live here: reconcile(committed configuration, registrations, liveness) → the next change of voters, if one is
// due. The leader runs it after its own first entry is applied, on every change of what it sees; it proposes at most one change at a
// time and none while the configuration is joint, and it recomputes every step, so that a new leader resumes where the old one stopped.
// These are rules 8 to 15 of the design: who is eligible, how many vote, how a voter is brought in, replaced, demoted and told that it
// was removed, how several leave at once, and how settings change while a group lives.
//
// Until then the voters of a group are those that its charter names (package birth).
//
// Guarantees, Concurrency, Failure, Limits: none yet; there is no code here. The room is kept free so that the import rules and the
// names around it do not change when the code comes.
//
// Refused alternative: letting gossip's view of who is alive drive the set of voters. It flaps with packet loss, and every flap would be
// a change of configuration.
package voters
