// Loaded before the control plane. Raises the thresholds of V8's optimizing compilers, which otherwise optimize code that runs only while a
// mesh is read and its proxies connect: on two cores that takes a quarter of the CPU time. Code that runs for each push and response is
// still optimized within the first minutes.
// The flags exist in V8 13, which is part of the installed Node; another version would print warnings about unknown flags.
'use strict';
if (/^13\./.test(process.versions.v8)) {
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev=1500');
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev-osr=400');
  require('node:v8').setFlagsFromString('--invocation-count-for-turbofan=30000');
  require('node:v8').setFlagsFromString('--invocation-count-for-osr=5000');
}
