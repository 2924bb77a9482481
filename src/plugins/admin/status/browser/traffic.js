// Renders a message's traffic data: clients, rules and limited networks.
import { element, putRows, putText } from './dom.js';
import { clock, counted, plural } from './format.js';

const REASONS = {
  'unknown-names': 'asks for handles that do not exist',
  'most-misses': 'makes most of the misses',
};

export function renderTraffic({ networks, agents, rules, blocked, blockedCount }) {
  putRows('networks', networks.map(describeClient), 'No misses.');
  putRows('agents', agents.map(describeClient), 'No misses.');
  putRows('rules', rules.map(describeRule), 'None.');
  renderBlocked(blocked, blockedCount);
}

const describeClient = ({ name, misses }) => [counted(misses), name || '(none)'];

const describeRule = ({ name, matched, limited, shadowed }) => [
  counted(limited),
  `${name}: ${counted(matched)} passed, ${counted(shadowed)} in shadow`,
];

/** Hides the list while it is empty. */
function renderBlocked(blocked, count) {
  element('blocked-part').hidden = count === 0;
  const rows = blocked.map(({ network, until, reason }) => [clock(until), `${network} ${REASONS[reason]}`]);
  putRows('blocked', rows, '');
  if (count > 0)
    putText('blocked-more', `${plural(count, 'network')}; to end one: DELETE /traffic/blocked/<network>`);
}
