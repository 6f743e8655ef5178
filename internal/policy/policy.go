// Package policy contains the rules of this repository as tests: for example permitted imports, the
// purity of cores, the length of functions, documentation, and correct names, quotes and snippets
// in docs.
//
// The tests read the source as text and syntax, without nested modules. They report a violation
// with its file and line and with advice. To change a rule, change it here and give the reason.
// Refused alternative: a linter, because it has no list of this module's packages.
package policy
