"""Uses the client that openapi-python-client generated: registers, approves, lists, searches, reads."""

import sys
import time

from registry_client import AuthenticatedClient, Client
from registry_client.api.agents import agent_card, agent_search, agent_show
from registry_client.api.domains import domain_register
from registry_client.api.reviews import review_approve, review_list, review_show
from registry_client.models import AgentSearchSort, Registration, ReviewDecision, ReviewListState

url, token, card_url = sys.argv[1:]
# A status that the document does not name raises.
anyone = Client(base_url=url, raise_on_unexpected_status=True)
admin = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)
end = time.monotonic() + 60


def until(ask, found):
    while time.monotonic() < end:
        answer = ask()
        if found(answer):
            return answer
    raise SystemExit(f'never came to pass; the last answer was {answer}')


domain = domain_register.sync(client=admin, body=Registration(card_url=card_url))
print(f'registered {domain.domain} {domain.state}')

page = until(
    lambda: review_list.sync(client=admin, state=ReviewListState.OPEN),
    lambda page: page.reviews,
)
review = review_show.sync(page.reviews[0].id, client=admin)
print(f'review {review.state}')
decision = ReviewDecision(digest=review.digest, reason='Read it.')
print(review_approve.sync(review.id, client=admin, body=decision).state)

page = until(
    lambda: agent_search.sync(client=anyone, sort=AgentSearchSort.NAME),
    lambda page: page.total == 1,
)
[listed] = page.agents
print(f'listed {listed.name} {listed.lifecycle}')
[found] = agent_search.sync(client=anyone, q='repeat', skill=['repeat'], facets=['skill']).agents
print(f'found {found.name} {found.skills[0].id}')
shown = agent_show.sync(str(found.id), client=anyone)
print(f'shown {shown.name} {shown.visibility}')
assert agent_card.sync(str(found.id), client=anyone)['skills'][0]['id'] == 'repeat'

refused = agent_search.sync(client=anyone, page_size=1000)
print(f'refused {refused.type_.rsplit("/", 1)[-1]} {refused.errors[0].pointer}')
missing = agent_show.sync('nothing', client=anyone)
print(f'missing {missing.type_.rsplit("/", 1)[-1]}')
