/**
 * A StrykerJS plugin: leaves a chart's static structure out of mutation testing. The structure is what stands in
 * `createMachine({ … })` outside of any function: which states there are, which event leads where, which guard, action and
 * delay is named where, and the texts for people. Each of its mutants would run all tests; the explorer and the model
 * tests walk the structure itself. Functions in there (what is passed to an action or a child) are mutated, and so is all
 * of `setup({ … })` but its `types`, which are there for the compiler only.
 */
import { declareClassPlugin, declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** Says how many mutants do not count, and why: the score is silent about them. */
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

/** Some node above, or this one, is such a place, and no function lies between. */
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
