import { defineConfig } from 'vitest/config';
import type { Reporter, TestModule } from 'vitest/node';

/** The last line of a run, alone on its line: what .ci/run ends with. */
const closingLine: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      // A file that does not load has no tests to fail.
      if (module.state() === 'failed' && module.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        count[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
    }
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  },
};

const measured = ['test/e2e/debugger-large.test.ts', 'test/e2e/debugger-live.test.ts'];

export default defineConfig({
  // XState's development build warns of events sent to stopped actors and of mistakes in a machine's configuration.
  ssr: { resolve: { conditions: ['development'] } },
  test: {
    reporters: ['default', closingLine],
    testTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['{machines,src,test,visualize}/**/*.test.ts'], exclude: ['test/e2e/**'] },
      },
      {
        extends: true,
        // Real Envoys measure time: two files at once at the most, after everything else. Ports, folders and base ids are
        // each test's own.
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: measured,
          maxWorkers: 2,
          testTimeout: 180_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        // What a person sees has its time in milliseconds: nothing else runs meanwhile.
        test: {
          name: 'measured',
          include: measured,
          maxWorkers: 1,
          testTimeout: 180_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
