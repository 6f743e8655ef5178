// Package policy contains the rules of this repository as tests. Examples are rules about the
// permitted imports, the purity of cores, the length of functions, the documentation of everything
// exported, dependencies in the root's API, README snippets that must run, and names, quotes and
// promises in docs that must be correct.
//
// The tests read the source as text and syntax. They report a violation with its file and line and
// with advice. To change a rule, change it here and give the reason; do not work around it.
//
// The package has no code besides tests. It examines this module without nested modules. It
// examines names, and not the values to which names refer. Refused alternative: the configuration
// of a linter, because a linter does not know the packages of this module.
package policy
