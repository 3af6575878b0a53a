import { expect, it } from 'vitest';
import { type Problem, problemText } from '../../model/config/problem.ts';
import { fullProblemText, problemLine, toConfigProblem } from './config-problem.ts';

const about: Problem = {
  ...{ severity: 'warning', file: '', line: 1, object: 'Gateway shop/web', field: 'spec.servers', message: 'is empty' },
};

it('an object of the cluster, which has no file, is located in the cluster and not in line 1 of nothing', () => {
  const problem = toConfigProblem(about);
  expect(problem.place).toEqual({ source: 'k8s://' });
  expect(problemLine(problem)).toBe('k8s://: Gateway shop/web: spec.servers: is empty');
  expect(fullProblemText(problem)).toMatch(/^k8s:\/\/: warning: Gateway/);
  expect(problemText(about)).toMatch(/^warning: Gateway/);
});

it('an object of a file is located by file and line', () => {
  const problem = toConfigProblem({ ...about, file: 'mesh/web.yaml', line: 12 });
  expect(problem.place).toEqual({ file: 'mesh/web.yaml', line: 12 });
  expect(problemText({ ...about, file: 'mesh/web.yaml', line: 12 })).toMatch(/^mesh\/web\.yaml:12: warning: /);
});
