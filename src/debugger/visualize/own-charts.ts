import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { discoveryProgramMachines } from '../../../machines/discovery/program-machines.ts';
import { machinesOf, statechartOf } from '../../runtime/trace/statechart.ts';
import { drawMachine } from './draw-machine.ts';
import { chartKey, type KnownCharts } from './known-charts.ts';

export async function drawOwnCharts(): Promise<KnownCharts> {
  const machines = machinesOf(agentMachine, ...discoveryProgramMachines).map(statechartOf);
  const drawings = machines.map(async (chart) => [chartKey(chart), await drawMachine(chart)] as const);
  return Object.fromEntries(await Promise.all(drawings));
}
