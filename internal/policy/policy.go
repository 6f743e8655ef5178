// Package policy holds the rules of this repository as tests: who may import whom, what a core may
// not touch, how long a function may be, that everything exported is documented, that no dependency
// shows in the root's API, that the snippets of the README run, and that what the pages in docs
// name, quote and promise is there, said and shown.
//
// The rules are read from the source as text and syntax, so a broken rule is reported with its file
// and line, and with the way out. A rule is changed here, with its reason, and never worked around
// where it hurts.
//
// Guarantees: none at run time, the package is only its tests. Concurrency, failure: not
// applicable. Limits: it looks at this module, not at nested ones, and at names, not at what a
// value can reach. Refused alternative: a linter's configuration, which knows our tools but not our
// packages.
package policy
