// Package check compares the files in deploy with the program that they run, and checks the rules
// that every deployment of a group must follow. It is a separate module, so that users of mortise
// do not depend on the types of Kubernetes.
//
// The Helm chart and the base for kustomize are rendered with several values, and the results are
// checked in the same way. The manifests are decoded as in the strict mode of the API server: an
// unknown, misspelt or repeated field is a fault. The probes, variables and ports in the files,
// and the time that they give the program to end, are compared with the program's source.
//
// Guarantees: if a file breaks a rule, the fault contains the reason for the rule. Concurrency: all
// functions depend on their arguments only. Failure: all faults of a file are returned together, as
// errors. Limits: no cluster is queried, so admission, quotas and defaults are not checked.
// compose.yaml and the unit are checked against tables of the keys that they use.
package check
