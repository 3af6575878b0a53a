import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestCase, type TestModule, type TestSpecification } from 'vitest/node';
import { nightlyFiles } from './test/harness/nightly-files.ts';
import { isFull } from './test/harness/size-of-run.ts';

/** Prints the last line of a run, which .ci/run parses. */
const closingLine: Reporter = {
  /** Prints failures immediately, because a run that is cut off does not reach Vitest's summary. */
  onTestCaseResult(test: TestCase) {
    const { state, errors = [] } = test.result();
    if (state !== 'failed') return;
    for (const { message, stacks } of errors) {
      const [at] = stacks ?? [];
      console.log(
        `failed: ${test.module.moduleId} > ${test.fullName}: ${message}${at ? ` (${at.file}:${at.line})` : ''}`,
      );
    }
  },
  onTestRunEnd(modules: readonly TestModule[]) {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      // A file that fails to load, or whose teardown fails, has no failed test.
      if (module.state() === 'failed' && module.errors().length > 0) count.failed++;
      for (const test of module.children.allTests()) {
        const state = test.result().state;
        count[state === 'passed' || state === 'failed' ? state : 'skipped']++;
      }
    }
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  },
};

/**
 * A long file that starts last delays the end of the run, and a clone has no timings of earlier runs. Ordered by wall-clock seconds, during which a
 * file occupies a process.
 */
const slowFiles = [
  'test/node/mesh/mesh',
  'test/node/node',
  'test/node/image',
  'test/cluster/authority-secret',
  'test/cluster/remote-clusters',
  'test/cluster/discovery',
  'test/cluster/chart',
  'test/cluster/same-as-files',
  'test/e2e/istio-iptables',
  'test/e2e/iptables-cleanup',
  'test/e2e/virtual-machine',
  'test/e2e/debugger-large',
  'test/e2e/generated',
  'test/e2e/debugger-accessible',
  'test/e2e/root-rotation',
  'test/e2e/calibration',
  'test/e2e/hostile-sinks',
  'test/e2e/reported-errors',
  'test/e2e/debugger-live',
  'test/e2e/fuzz',
  'test/e2e/tarball',
  'test/e2e/changes-without-loss',
  'test/e2e/churn',
  'test/e2e/debugger-hands',
  'test/e2e/stand-in',
  'test/e2e/hot-restart',
  'test/load/returning-nodes',
  'test/e2e/secrets',
  'test/load/hostile-clients',
  'test/e2e/debugger-security',
  'test/e2e/first-process',
  'test/e2e/features/restrictions',
  'test/e2e/debugger-layout',
  'test/e2e/debugger-many-names',
  'test/e2e/debugger-causes',
  'test/e2e/features/gateway-tls',
  'test/e2e/debugger-case',
  'test/e2e/live-restore',
  'test/e2e/random-config',
  'test/e2e/features/telemetry',
  'test/e2e/reconnect',
  'test/e2e/debugger-views',
  'test/e2e/refused-certificate',
  'test/e2e/debugger-page',
  'test/e2e/container',
  'test/e2e/pods',
  'test/load/hostile-files',
  'test/e2e/debugger-export',
  'test/e2e/envoy-accepts',
  'test/e2e/replay',
  'test/e2e/debugger-firefox',
  'test/e2e/exit-on-zero',
  'test/e2e/foreign-client',
  'test/e2e/debug-endpoints',
  'test/load/status-port',
  'test/e2e/features/request-handling',
  'test/e2e/features/gateway-api',
  'test/e2e/start-up',
  'test/e2e/features/destination-rule',
  'test/e2e/stuck-child',
  'test/e2e/features/listener-binding',
  'test/e2e/features/request-authentication',
  'test/e2e/envoy-crashing-values',
  'src/discovery/push/built-ahead',
  'src/discovery/ca/roots-for-agents',
  'test/model/explore',
  'test/conformance/scenarios',
  'src/agent/xds/xds-hostile',
  'test/model/explore-discovery',
  'src/agent/agent-system',
  'src/agent/files/directory-watch.effects',
  'src/agent/secrets/issued-secrets',
  'src/discovery/discovery-system',
  'src/discovery/ca/server-certificate/port-certificate',
  'src/cli/output',
  'src/discovery/push/incremental.property',
  'test/model/random-faults',
  'src/debugger/generate/generate-command',
  'test/model/explore-identity',
  'test/generated/simulation',
  'test/model/agent/secrets',
  'src/discovery/config/files/directory-watch',
  'src/agent/admin/live-probe',
  'src/discovery/xds/edge-cases',
  'test/model/explore-binary',
  'test/lint',
  'test/e2e/envoy-replaced',
  'test/e2e/crash',
  'test/e2e/second-base-id',
  'test/e2e/trace-secrets',
  'test/e2e/control-plane-away',
  'test/e2e/weights',
  'test/e2e/discovery',
];

/** Files that mostly wait precede files that use the CPU: the last files of a run are short, which keeps both cores busy. */
const inOrder = ['lint', 'cluster', 'e2e', 'alone', 'unit', 'timed', 'measured'];

class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = slowFiles.findIndex((name) => moduleId.includes(`/${name}.`));
      return found < 0 ? slowFiles.length : found;
    };
    // Files of a project are adjacent, because a process continues only with files of its own project.
    const sorted = await super.sort(files);
    const rank = ({ project }: TestSpecification): number => inOrder.indexOf(project.name);
    return sorted.sort((one, other) => rank(one) - rank(other) || place(one) - place(other));
  }
}

/** The file name states special requirements (test/README.md). All other files share processes. */
const alone = '**/*.alone.test.ts';
const timed = '**/*.timed.test.ts';
const measured = '**/*.measured.test.ts';
const lint = 'test/clean-tree.test.ts';
const e2e = 'test/e2e/**/*.test.ts';
const load = 'test/load/**/*.test.ts';
const cluster = 'test/cluster/**/*.test.ts';
const node = 'test/node/**/*.test.ts';
const nightly = isFull ? [] : nightlyFiles.map(({ file }) => file);

/**
 * One group, in which a file starts when another one ends. Separate groups left cores idle at the end of each, and five waiting files left a quarter
 * of two cores idle.
 */
const beside = { maxWorkers: 6, sequence: { groupOrder: 1 } };

export default defineConfig({
  // XState's development build warns about events for stopped actors and invalid machine configurations.
  ssr: { resolve: { conditions: ['development'] } },
  test: {
    reporters: ['default', closingLine],
    // Stops hanging tests only: on machines with ten other tasks and half the speed a test took 91 s, and each wait of
    // a failing test may take patienceMs (test/harness/eventually.ts), whose message is more specific.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // A page that is rendered next to six other files needs more than the default second for its first frame.
    expect: { poll: { timeout: 90_000 } },
    setupFiles: ['test/harness/setup-cpu.ts'],
    // Hundreds of programs run from source. Without this cache half of their time is type stripping and compilation.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
    sequence: { sequencer: SlowFilesFirst },
    projects: [
      { extends: true, test: { name: 'lint', include: [lint], ...beside } },
      {
        extends: true,
        // These files share an API server, which stops after the last of them. `timed` and `measured` run later.
        test: {
          name: 'cluster',
          include: [cluster, node],
          exclude: [alone, ...nightly],
          isolate: false,
          globalSetup: ['test/cluster/global-setup.ts'],
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      {
        extends: true,
        // These files mostly wait for an Envoy, a file or a page, and use separate ports, folders and base IDs.
        // Starting a process for each file takes as long as starting four Envoys, so they share six.
        test: {
          name: 'e2e',
          include: [e2e, load],
          exclude: [alone, timed, measured, ...nightly],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      { extends: true, test: { name: 'alone', include: [alone], ...beside } },
      {
        extends: true,
        // Six processes run all files, because starting a process for each file took as long as the tests.
        // `setup-shared.ts` checks that a file leaves no state behind.
        test: {
          name: 'unit',
          include: ['{deploy,machines,src,test,visualize}/**/*.test.ts'],
          exclude: [e2e, load, cluster, node, alone, timed, measured, lint, ...nightly],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      {
        extends: true,
        // These tests check seconds, or requests under load: with four in parallel, a crash took longer than its second. They wait for a third of
        // their time.
        test: {
          name: 'timed',
          include: [timed],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        // These tests check milliseconds of user interfaces, so they run alone.
        test: {
          name: 'measured',
          include: [measured],
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
