// Loaded before the programs, by any Node: so old that it could not read them, it still reads this.
'use strict';
var version = process.versions.node.split('.').map(Number);
if (version[0] < 22 || (version[0] === 22 && version[1] < 22)) {
  process.stderr.write(
    'chartpilot needs Node 22.22 or newer; ' +
      process.execPath +
      ' is ' +
      process.version +
      '.\n' +
      '  → Put a newer one into PATH, or install chartpilot with its optional dependencies: Node 24 is one of them.\n',
  );
  process.exit(1);
}

// What was compiled in an earlier run is read instead of compiled again: a fifth of the processor time of a start. Where
// the folder cannot be written nothing is kept, and nobody is told: all else is as it was.
require('node:module').enableCompileCache(require('node:path').join(__dirname, '../dist/compile-cache'));
