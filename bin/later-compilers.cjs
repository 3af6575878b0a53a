// Loaded before the control plane. By default V8's optimizing compilers take up what is only passed by while a mesh is read and its
// proxies come: on two cores they then take a quarter of the processor time beside the program that they are to make faster. They
// begin later: what runs for each push and each response is optimized all the same, within the first minutes.
// The names are those of V8 13, that of the Node that comes along; another one would tell of names that it does not know.
'use strict';
if (/^13\./.test(process.versions.v8)) {
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev=1500');
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev-osr=400');
  require('node:v8').setFlagsFromString('--invocation-count-for-turbofan=30000');
  require('node:v8').setFlagsFromString('--invocation-count-for-osr=5000');
}
