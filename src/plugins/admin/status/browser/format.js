// Formats numbers as text or as [number, unit].

export const counted = (count) => count.toLocaleString('en');
export const rate = (perSecond) => counted(perSecond < 100 ? perSecond : Math.round(perSecond));
/** Rounds down, so that 100 % means every request. */
export const percent = (part) => (part === null ? ['–'] : [String(Math.floor(part * 1000) / 10), '%']);
export const time = (seconds) => {
  if (seconds === null) return ['–'];
  return seconds < 1
    ? [String(Number((seconds * 1000).toPrecision(3))), 'ms']
    : [seconds.toPrecision(3), 's'];
};
export const bytes = (size) => {
  const power = Math.min(3, Math.max(1, Math.floor(Math.log2(size || 1) / 10)));
  const amount = size / 1024 ** power;
  return [
    amount < 10 && amount > 0 ? amount.toFixed(1) : amount.toFixed(0),
    ['KiB', 'MiB', 'GiB'][power - 1],
  ];
};
/** Formats a time of day with its zone, which is that of the browser, while the log has UTC. */
export const clock = (at) => new Date(at).toLocaleTimeString('en-GB', { timeZoneName: 'short' });
export const span = (seconds) => {
  const [days, hours, minutes] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  );
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
};
export const plural = (count, noun) => `${counted(count)} ${noun}${count === 1 ? '' : 's'}`;
export const joined = (parts, between = ' ') => parts.join(between);
