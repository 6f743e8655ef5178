// Package policy contains the rules of this repository as tests. Examples are the permitted
// imports, the purity of cores, the length of functions, documentation of everything exported, no
// dependencies in the root's API, README snippets that run, and names, quotes and promises in docs
// that are correct.
//
// The tests read the source as text and syntax. They report a violation with its file and line and
// with advice. To change a rule, change it here and give the reason; do not work around it.
//
// The package has no code besides tests. It examines this module without nested modules. It
// examines names, not the values that code can reach. Refused alternative: a linter's
// configuration, which does not know our packages.
package policy
