import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestCase, type TestModule, type TestSpecification } from 'vitest/node';

/** The last line of a run, alone on its line: what .ci/run ends with. */
const closingLine: Reporter = {
  /** Vitest says why at the end, which a run that is cut off does not reach. */
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
      // A file that does not load, or whose last check fails, has no test to fail for it.
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
 * A file that begins last and takes a minute is waited for alone; a clone knows of no earlier run. By the seconds that each took of
 * a clock, which is what it keeps a process for.
 */
const longest = [
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
  'test/e2e/mistakes',
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

/** What waits comes before what works: the last files of a run are then short ones, which keep both cores busy to the end. */
const inOrder = ['lint', 'cluster', 'e2e', 'alone', 'unit', 'timed', 'measured'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(`/${name}.`));
      return found < 0 ? longest.length : found;
    };
    // Those of a project come together: a process that ends a file goes on with the next one of its own project only.
    const sorted = await super.sort(files);
    const rank = ({ project }: TestSpecification): number => inOrder.indexOf(project.name);
    return sorted.sort((one, other) => rank(one) - rank(other) || place(one) - place(other));
  }
}

/** A file says in its name what it asks of its surroundings (test/README.md); the others share a process. */
const alone = '**/*.alone.test.ts';
const timed = '**/*.timed.test.ts';
const measured = '**/*.measured.test.ts';
const lint = 'test/clean-tree.test.ts';
const e2e = 'test/e2e/**/*.test.ts';
const load = 'test/load/**/*.test.ts';
const cluster = 'test/cluster/**/*.test.ts';
const node = 'test/node/**/*.test.ts';

/**
 * One group, in which a file begins as soon as another one ends: groups run one after the other, and each ended with idle cores. Five
 * files that wait left a quarter of two processors idle.
 */
const beside = { maxWorkers: 6, sequence: { groupOrder: 1 } };

export default defineConfig({
  // XState's development build warns of events sent to stopped actors and of mistakes in a machine's configuration.
  ssr: { resolve: { conditions: ['development'] } },
  test: {
    reporters: ['default', closingLine],
    // Against hanging alone: on machines that do ten other things and run at half their speed one took 91 s, and each of the waits
    // in a test that fails may take patienceMs (test/harness/eventually.ts), whose word says more than this limit.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // The condition decides, not the clock: a page beside six other files draws its first frame after more than the usual second.
    expect: { poll: { timeout: 90_000 } },
    setupFiles: ['test/harness/setup-cpu.ts'],
    // Hundreds of programs are started from their sources: to strip their types and compile them took half of that time.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: 'lint', include: [lint], ...beside } },
      {
        extends: true,
        // They share an API server, which ends when the last of them has: `timed` and `measured` come later.
        test: {
          name: 'cluster',
          include: [cluster, node],
          isolate: false,
          globalSetup: ['test/cluster/global-setup.ts'],
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      {
        extends: true,
        // Most of their time they wait for an Envoy, a file, a page. Ports, folders and base ids are each test's own. To begin a
        // process for a file takes as long as to start four Envoys: they share six.
        test: {
          name: 'e2e',
          include: [e2e, load],
          exclude: [alone, timed, measured],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      { extends: true, test: { name: 'alone', include: [alone], ...beside } },
      {
        extends: true,
        // Six processes take all files: to begin one for each file took as long as the tests. A file leaves everything as it found
        // it, which `setup-shared.ts` watches.
        test: {
          name: 'unit',
          include: ['{deploy,machines,src,test,visualize}/**/*.test.ts'],
          exclude: [e2e, load, cluster, node, alone, timed, measured, lint],
          isolate: false,
          setupFiles: ['test/harness/setup-shared.ts'],
          ...beside,
        },
      },
      {
        extends: true,
        // Seconds are judged there, or requests under load: with four at once, a crash was not over in its second. They wait
        // for a third of their time.
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
        // What a person sees has its time in milliseconds: nothing else runs meanwhile.
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
