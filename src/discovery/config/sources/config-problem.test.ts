import { expect, it } from 'vitest';
import { type Problem, problemText } from '../../../model/config/problem.ts';
import { codedMessage, codesOf, fullProblemText, problemLine, toConfigProblem } from './config-problem.ts';

const baseProblem: Problem = {
  ...{ severity: 'warning', file: '', line: 1, object: 'Gateway shop/web', field: 'spec.servers', message: 'is empty' },
};

it('a problem of an object in a cluster has the cluster as its location', () => {
  const problem = toConfigProblem(baseProblem);
  expect(problem.place).toEqual({ source: 'k8s://' });
  expect(problemLine(problem)).toBe('k8s://: Gateway shop/web: spec.servers: is empty');
  expect(fullProblemText(problem)).toMatch(/^k8s:\/\/: warning: Gateway/);
  expect(problemText(baseProblem)).toMatch(/^warning: Gateway/);
});

it('a problem has its code as a field in logs and in brackets in Events', () => {
  const problem = toConfigProblem({ ...baseProblem, code: 'FIELD_EMPTY' });
  expect(problem.code).toBe('FIELD_EMPTY');
  expect(codedMessage(problem)).toBe('is empty [FIELD_EMPTY]');
  expect(codesOf([problem, { ...problem, code: 'FIELD_UNKNOWN' }, problem, toConfigProblem(baseProblem)])).toBe(
    'FIELD_EMPTY, FIELD_UNKNOWN',
  );
});

it('a problem of an object in a file has the file and line as its location', () => {
  const problem = toConfigProblem({ ...baseProblem, file: 'mesh/web.yaml', line: 12 });
  expect(problem.place).toEqual({ file: 'mesh/web.yaml', line: 12 });
  expect(problemText({ ...baseProblem, file: 'mesh/web.yaml', line: 12 })).toMatch(/^mesh\/web\.yaml:12: warning: /);
});
