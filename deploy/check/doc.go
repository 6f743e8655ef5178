// Package check checks the files of deploy against the program that they run, and against the rules
// that keep a group whole. It is a separate module, so that users of mortise do not depend on the
// types of Kubernetes.
//
// The manifests are decoded strictly, as the API server does in strict mode: an unknown, misspelt
// or repeated field is a fault. What the files state about the program (probes, variables, ports,
// how long it takes to end) is compared with the program's source, so neither can change alone.
//
// Guarantees: if a file breaks a rule, the fault names the reason for the rule. The package's test
// breaks every rule, one by one, and checks that the fault is found. Concurrency: all functions
// depend on their arguments only. Failure: all faults are returned at once, as errors. Limits: no
// cluster is asked, so admission, quotas and defaults are not seen. compose.yaml and the unit are
// checked against tables of the keys that they use. Refused alternative: a schema checker, which
// knows fields but not why they are set.
package check
