import type { SubjectMaker } from '../edge.ts';
import { agentMaker } from './agent.ts';
import { discoveryMaker } from './discovery.ts';
import { functionsMaker } from './functions.ts';
import { grpcProgramsMaker } from './grpc-programs.ts';
import { identityMaker } from './identity.ts';
import { pageMaker } from './page.ts';
import { secretsMaker } from './secrets.ts';

export const subjectMakers: readonly SubjectMaker[] = [
  functionsMaker,
  identityMaker,
  discoveryMaker,
  grpcProgramsMaker,
  agentMaker,
  secretsMaker,
  pageMaker,
];
