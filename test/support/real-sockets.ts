// Import it for its effect: whatever else the test imports, node:http is not replaced by nock.
import nock from 'nock';

nock.restore();
