// Package check holds the files of deploy to the program that they run and to the rules by which a
// group stays whole. It is a module of its own, so that who uses mortise does not depend on the
// types of Kubernetes.
//
// The manifests are decoded as the API server does it when it is strict: an unknown, misspelt or
// repeated field is a fault. What the files say of the program (probes, variables, ports, how long
// its end takes) is read from the program's source, so neither can change alone.
//
// Guarantees: a rule that a file breaks is reported with the reason for the rule. The package's
// test also breaks every rule, one by one, and sees that it is noticed. Concurrency: functions of
// their arguments. Failure: faults are errors, all at once. Limits: no cluster is asked, so
// admission, quotas and defaults are not seen; compose.yaml and the unit are held to the keys that
// they use, by tables here. Refused alternative: a schema checker, which knows fields but not why
// they are there.
package check
