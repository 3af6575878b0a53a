/**
 * A StrykerJS plugin that excludes a chart's static structure from mutation testing: everything in `createMachine({ …
 * })` outside of functions, i.e. states, transitions, names of guards, actions and delays, and descriptions. Each of
 * its mutants would run all tests, and the explorer and the model tests cover the structure itself. Functions in there
 * are mutated, and so is `setup({ … })` except its `types`, which only the compiler reads.
 */
import { declareClassPlugin, declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** Reports the number of excluded mutants and the reason, which the score does not show. */
class LeftOutReporter {
  onMutationTestReportReady({ files }) {
    const mutants = Object.values(files).flatMap((file) => file.mutants);
    const ignored = mutants.filter(({ status }) => status === 'Ignored');
    const counts = Map.groupBy(ignored, ({ statusReason }) => statusReason);
    const reasons = [...counts].map(([reason, { length }]) => `${length} ${reason}`);
    console.log(`${mutants.length - ignored.length} mutants tried; left out: ${reasons.join(', ') || 'none'}`);
  }
}

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'chart-structure', {
    shouldIgnore(path) {
      if (isWithin(path, isChart)) return 'static structure of a chart';
      return isWithin(path, isTypes) ? 'types of a chart' : undefined;
    },
  }),
  declareClassPlugin(PluginKind.Reporter, 'left-out', LeftOutReporter),
];

/** Whether this node or an ancestor matches, without a function in between. */
function isWithin(path, isSuch) {
  for (let place = path; place !== null && !place.isFunction(); place = place.parentPath) {
    if (isSuch(place)) return true;
  }
  return false;
}

/** The argument of a call of `createMachine`. */
function isChart({ node, parent }) {
  return (
    parent?.type === 'CallExpression' && parent.callee !== node && parent.callee.property?.name === 'createMachine'
  );
}

/** The property `types` of the argument of a call of `setup`. */
function isTypes({ node, parentPath }) {
  const call = parentPath?.parent;
  return node.type === 'ObjectProperty' && node.key.name === 'types' && call?.callee?.name === 'setup';
}
