// Package check compares the files in deploy with the program that they run, and checks the rules
// that keep a group whole. It is a separate module, so that users of mortise do not depend on the
// types of Kubernetes.
//
// The manifests are decoded as in the strict mode of the API server: an unknown, misspelt or
// repeated field is a fault. What the files say about the program (probes, variables, ports, and
// how long it takes to end) is compared with the program's source.
//
// Guarantees: if a file breaks a rule, the fault contains the reason for the rule. Concurrency: all
// functions depend on their arguments only. Failure: all faults of a file are returned together, as
// errors. Limits: no cluster is queried, so admission, quotas and defaults are not checked.
// compose.yaml and the unit are checked against tables of the keys that they use.
package check
