// Loaded before the agent, which runs beside each workload and is idle most of the time. Functions are optimized only after ten times as many
// calls as by default, which saves 5 MB of compiler memory. Frequent code (DNS, metrics) is still optimized.
// The flags exist in V8 13, which is part of the installed Node; another version would print warnings about unknown flags.
'use strict';
if (/^13\./.test(process.versions.v8)) {
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev=4000');
  require('node:v8').setFlagsFromString('--invocation-count-for-maglev-osr=1000');
  require('node:v8').setFlagsFromString('--invocation-count-for-turbofan=30000');
  require('node:v8').setFlagsFromString('--invocation-count-for-osr=5000');
}
